// k6's open model: so many GETs a second, whatever the target does. TARGET is the URL.
import http from "k6/http";

export const options = {
  discardResponseBodies: true,
  summaryTrendStats: ["med", "p(99)", "max"],
  scenarios: {
    constant: {
      executor: "constant-arrival-rate",
      rate: Number(__ENV.RATE),
      timeUnit: "1s",
      duration: `${__ENV.SECONDS}s`,
      preAllocatedVUs: Number(__ENV.CONNECTIONS),
    },
  },
};

export default function () {
  http.get(__ENV.TARGET);
}

// k6's simplest user: one GET after the other. TARGET is the URL; users and time are flags of `k6 run`.
import http from "k6/http";

export const options = { discardResponseBodies: true };

export default function () {
  http.get(__ENV.TARGET);
}

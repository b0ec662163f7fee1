// The scenario of two requests for k6.
import http from "k6/http";

export default function () {
  http.get(`${__ENV.HOST}/cart`);
  http.get(`${__ENV.HOST}/order`);
}

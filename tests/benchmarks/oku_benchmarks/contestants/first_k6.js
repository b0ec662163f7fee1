// What a newcomer to k6 writes; its flags say how many and how many at a time.
import http from "k6/http";

export default function () {
  http.get(__ENV.TARGET);
}

export { download as fetchList } from "./client.js";

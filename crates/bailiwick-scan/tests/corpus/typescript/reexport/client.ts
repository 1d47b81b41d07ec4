export const download = async (url: string): Promise<Response> => fetch(url, { method: "GET" });

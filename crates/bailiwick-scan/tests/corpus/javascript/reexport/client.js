export async function download(url) {
  return (await fetch(url)).text();
}

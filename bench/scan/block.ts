interface Shape%BLOCK% {
  id: number;
  name: string | undefined;
}
export function f%BLOCK%(input: Shape%BLOCK%, limit: number = %BLOCK%): string[] {
  const parts = (input.name ?? "none").split(",").map((part) => part.trim());
  if (parts.length > limit) {
    return parts.slice(0, limit).concat([String(input.id), `${parts.length} in all`]);
  }
  return parts.filter((part) => part.length > 0 && part !== "%BLOCK%");
}

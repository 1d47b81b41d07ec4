server.registerTool("tool%FILE%", {}, async ({ path }) => (await helper%FILE%(path)) + (await helper%NEXT%(path)));
// The file is a thousand lines long.
// It ends here.

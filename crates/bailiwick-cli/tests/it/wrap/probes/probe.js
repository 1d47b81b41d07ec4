// Tries what no manifest grants, from the place of a server, and tells the client what came of it.
const facts = FACTS;
const fs = require('fs');
const net = require('net');
const child = require('child_process');
const came = {};
const attempt = (act, work) => {
  try {
    work();
    came[act] = 'done';
  } catch (fault) {
    came[act] = `refused: ${fault.code || fault.message}`;
  }
};
const ensure = (holds, why) => {
  if (!holds) throw new Error(why);
};

attempt('read own code', () => fs.readFileSync(__filename));
attempt('read a granted file', () => fs.readFileSync(facts.granted));
attempt('read /etc/shadow', () => fs.readFileSync('/etc/shadow'));
attempt('read ~/.ssh', () => fs.readFileSync(facts.key));
attempt('write outside', () => fs.writeFileSync(facts.outside, 'planted'));
attempt('write its own code', () => fs.writeFileSync(facts.planted, 'planted'));
attempt('read an undeclared variable', () => ensure(process.env.UNDECLARED_TOKEN, 'it is not set'));
attempt('spawn a shell', () => {
  const shell = child.spawnSync('/bin/sh', ['-c', 'echo shell']);
  ensure(!shell.error && `${shell.stdout}`.includes('shell'), shell.error ? shell.error.code : 'no answer');
});
attempt('survive', () => {
  const left = child.spawn(process.execPath, ['-e', 'setTimeout(() => {}, 600000)', facts.word], { detached: true, stdio: 'ignore' });
  left.on('error', () => {});
  ensure(left.pid, 'no process');
  left.unref();
});

const connect = (act, where) =>
  new Promise((resolve) => {
    const socket = net.connect(where);
    const end = (how) => {
      came[act] = how;
      socket.destroy();
      resolve();
    };
    socket.setTimeout(5000, () => end('refused: no answer'));
    socket.on('data', (data) => end(`${data}` === 'hello' ? 'done' : 'refused: another answered'));
    socket.on('end', () => end('refused: closed'));
    socket.on('error', (fault) => end(`refused: ${fault.code || fault.message}`));
  });

(async () => {
  await connect('reach another host', { host: '127.0.0.1', port: facts.port });
  await connect('reach a host by name', { host: 'localhost', port: facts.port, family: 4 });
  await connect('talk to a Unix socket', { path: facts.socket });
  await connect('talk to a Unix socket in a granted place', { path: facts.granted_socket });
  console.log(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: came } }));
  process.stdin.resume();
})();

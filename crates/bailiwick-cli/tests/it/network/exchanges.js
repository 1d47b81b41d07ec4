// Inside the sandbox: COUNT exchanges in each way to send a secret, each answer kept; after each way, a line on stdout and a
// wait for one on stdin. Run as `node -e`, with COUNT and a directory to write to.
const { createHash, createHmac, randomBytes } = require('crypto');
const https = require('https');
const fs = require('fs');
const [count, directory] = [Number(process.argv[1]), process.argv[2]];
const { TOKEN, AWS_SECRET_ACCESS_KEY, REPORTS_TOKEN } = process.env;
const agent = new https.Agent({ keepAlive: true, maxSockets: 4 });

const send = (host, path, method, headers, body) => new Promise((done, failed) => {
  const asked = https.request({ host, path, method, headers, agent }, (answer) => {
    const pieces = [];
    answer.on('data', (piece) => pieces.push(piece));
    answer.on('end', () => done({ status: answer.statusCode, head: JSON.stringify(answer.headers), body: Buffer.concat(pieces) }));
    answer.on('error', failed);
  });
  asked.on('error', failed);
  asked.end(body);
});
const post = (path, type, body) => send('good.test', path, 'POST', { 'content-type': type, 'content-length': Buffer.byteLength(body) }, body);

// The signature of a GET, as the libraries of AWS make it.
const signed = (path) => {
  const sha = (text) => createHash('sha256').update(text).digest('hex');
  const hmac = (key, text) => createHmac('sha256', key).update(text).digest();
  const time = new Date().toISOString().replace(/[-:]|\.\d+/g, '');
  const day = time.slice(0, 8), nothing = sha('');
  const fields = { host: 'aws.test', 'x-amz-content-sha256': nothing, 'x-amz-date': time };
  const names = Object.keys(fields).join(';');
  const canonical = ['GET', path, '', ...Object.entries(fields).map(([name, value]) => `${name}:${value}`), '', names, nothing].join('\n');
  const scope = `${day}/eu-north-1/s3/aws4_request`;
  const key = [day, 'eu-north-1', 's3', 'aws4_request'].reduce((key, part) => hmac(key, part), 'AWS4' + AWS_SECRET_ACCESS_KEY);
  const signature = hmac(key, ['AWS4-HMAC-SHA256', time, scope, sha(canonical)].join('\n')).toString('hex');
  return { ...fields, authorization: `AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/${scope}, SignedHeaders=${names}, Signature=${signature}` };
};

// A WebSocket: one message, in frames that are cut at `cut`, and the answer to it.
const websocket = (path, text, cut) => new Promise((done, failed) => {
  const headers = { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13', 'sec-websocket-key': randomBytes(16).toString('base64') };
  const asked = https.request({ host: 'good.test', path, headers, agent: false });
  const frame = (kind, part) => {
    const bytes = Buffer.from(part), mask = randomBytes(4);
    const length = bytes.length < 126 ? [0x80 | bytes.length] : [0x80 | 126, bytes.length >> 8, bytes.length & 255];
    return Buffer.concat([Buffer.from([kind, ...length]), mask, bytes.map((byte, at) => byte ^ mask[at % 4])]);
  };
  asked.on('response', (answer) => { answer.resume(); done({ status: answer.statusCode, head: '', body: Buffer.alloc(0) }); });
  asked.on('error', failed);
  asked.on('upgrade', (answer, socket, first) => {
    let said = first;
    const look = () => {
      if (said.length < 2) return;
      const short = said[1] & 127, head = short < 126 ? 2 : short === 126 ? 4 : 10;
      if (said.length < head) return;
      const length = short < 126 ? short : short === 126 ? said.readUInt16BE(2) : Number(said.readBigUInt64BE(2));
      if (said.length < head + length) return;
      socket.destroy();
      done({ status: 101, head: JSON.stringify(answer.headers), body: said.subarray(head, head + length) });
    };
    socket.on('data', (piece) => { said = Buffer.concat([said, piece]); look(); });
    socket.on('error', failed);
    socket.on('close', () => done({ status: 0, head: '', body: said }));
    socket.write(frame(0x01, text.slice(0, cut)));
    socket.write(frame(0x80, text.slice(cut)));
    look();
  });
  asked.end();
});

const WAYS = {
  header: (at) => send('good.test', '/' + at, 'GET', { authorization: 'Bearer ' + TOKEN }),
  field: (at) => send('good.test', '/' + at, 'GET', { 'x-own': TOKEN }),
  basic: (at) => send('good.test', '/' + at, 'GET', { authorization: 'Basic ' + Buffer.from('x'.repeat(at % 5) + ':' + TOKEN).toString('base64') }),
  query: (at) => send('good.test', `/${at}?a=b&key=${TOKEN}`, 'GET', {}),
  form: (at) => post('/' + at, 'application/x-www-form-urlencoded', `a=${at}&client_secret=${TOKEN}`),
  json: (at) => post('/' + at, 'application/json', JSON.stringify({ at, apiKey: TOKEN })),
  websocket: (at) => websocket('/' + at, JSON.stringify({ at, token: TOKEN }), at % 40),
  aws: (at) => send('aws.test', '/' + at, 'GET', signed('/' + at)),
  oauth: (at) => send('reports.test', '/' + at, 'GET', { authorization: 'Bearer ' + REPORTS_TOKEN }),
};

const lines = require('readline').createInterface({ input: process.stdin })[Symbol.asyncIterator]();
(async () => {
  for (const [name, exchange] of Object.entries(WAYS)) {
    const kept = [], statuses = {};
    let next = 0, covered = 0;
    const worker = async () => {
      while (next < count) {
        const answer = await exchange(next++);
        kept.push(answer);
        statuses[answer.status] = (statuses[answer.status] || 0) + 1;
        if ((answer.head + answer.body).includes('*'.repeat(16))) covered += 1;
      }
    };
    await Promise.all([worker(), worker(), worker(), worker()]);
    fs.writeFileSync(`${directory}/${name}`, kept.map((answer) => answer.head + '\n' + answer.body).join('\n'));
    console.log(JSON.stringify({ way: name, statuses, covered }));
    await lines.next();
  }
  process.exit(0);
})().catch((fault) => { console.log(JSON.stringify({ fault: String(fault && fault.stack) })); process.exit(1); });

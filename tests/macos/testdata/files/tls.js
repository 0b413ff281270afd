fetch("https://example.com").then((answer) => console.log(answer.status), (why) => { console.error(why); process.exit(1); });

// Drives the Inspector's web page in a headless browser: connects to the server, opens the tools, runs run_list and waits
// for its answer. It writes a picture of the page and prints what the page shows as one JSON object.
//
//   node page.mjs URL BROWSER PROFILE_FOLDER PICTURE.png RUN_ID
import puppeteer from 'puppeteer-core';

const [url, executablePath, userDataDir, picture, run] = process.argv.slice(2);
const browser = await puppeteer.launch({ executablePath, userDataDir, args: ['--no-sandbox', '--disable-gpu'] });
try {
  const page = await browser.newPage();
  page.setDefaultTimeout(60_000);
  await page.setViewport({ width: 1400, height: 1200 });
  const faults = [];
  page.on('pageerror', (e) => faults.push(String(e)));
  await page.goto(url);
  const press = async (selector) => {
    const element = await page.waitForSelector(selector);
    await element.evaluate((e) => e.click());
  };
  await press('input[aria-label^="Connect or disconnect"]');
  await page.waitForFunction(() => /\bConnected\b/.test(document.body.innerText));
  await page.waitForFunction(() => [...document.querySelectorAll('label')].some((l) => l.innerText.trim() === 'Tools'));
  await page.evaluate(() => [...document.querySelectorAll('label')].find((l) => l.innerText.trim() === 'Tools').click());
  await press('::-p-xpath(//button[.//*[text()="run_list"] or contains(., "run_list")])');
  await press('::-p-xpath(//button[contains(., "Execute Tool")])');
  await page.waitForFunction((id) => document.body.innerText.includes(id), {}, run);
  await page.screenshot({ path: picture });
  console.log(JSON.stringify({ text: await page.evaluate(() => document.body.innerText), faults }));
} finally {
  await browser.close();
}

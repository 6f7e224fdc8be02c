// Summarizes one table with DuckDB as it comes, with all its threads, and prints what it took.
// node duckdb.mjs csv|jsonl PATH
import { DuckDBInstance } from '@duckdb/node-api';

const [form, path] = process.argv.slice(2);
const quoted = `'${path.replaceAll("'", "''")}'`;
const table = form === 'csv' ? `read_csv(${quoted})` : `read_json(${quoted}, format = 'newline_delimited')`;
const connection = await (await DuckDBInstance.create(':memory:')).connect();
const began = performance.now();
const summary = (await connection.runAndReadAll(`SUMMARIZE SELECT * FROM ${table}`)).getRowObjects();
const seconds = (performance.now() - began) / 1000;
console.log(JSON.stringify({ seconds, rows: Number(summary[0].count), columns: summary.length }));

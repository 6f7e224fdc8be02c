package server

// Instructions is what a client shows its model before the first call: from it alone an agent can start, go on and
// end well. Clients cut it at about 2 KB.
const Instructions = `trainwright carries out one training step of an orchestrator or a user: it reads the project and the data, keeps a run on disk, checks every phase by a gate, runs the job and derives the verdict from evidence. You bring the judgement it asks for; it remembers, checks, runs and proves.

How to work:
1. Start with tool "trainer": {"step_handoff": {...}} exactly as you got it, or {"request": "what to train, in the user's words"} if there is none. Do not invent paths, parameters or metric names; what is not known, leave out.
2. Every answer carries run.next_call {tool, arguments}: make that call next, with what "needs" asks for filled in. Later calls send run_id instead of the handoff. Phases can't be skipped; a call out of order is answered with the call to make.
3. "needs" lists what a gate waits for, where it might be found and candidates. Accept a candidate by its id, or give a fact with its source and a verbatim quote. "findings" say what is wrong, where, and what to send instead.
4. Never claim success unless execution_result.status is "success". "partial" may mean that a job still runs, or that something is open: read observation.missing. "blocked" needs the user: ask exactly for what is named. Numbers in your report come from claims.json, as validation_report.md shows them, with their level (logged, recomputed, reevaluated).
5. Jobs outlive this session. While one runs, call trainer {"run_id", "wait_seconds": 300} or job_status {"job_ids"}; job_logs reads on by cursor. Do not start the same training by hand.

After a break: run_list and run_status show where each run stands. Artifacts are resources: run://<run_id>/<artifact> (training_plan.md, validation_report.md, ...). Knowledge with sources: recall. Skills: skill_list, skill_get, or skill://<name>/SKILL.md.`

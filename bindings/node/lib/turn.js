'use strict'

// Whether the event loop had its turn lately. A program that awaits only what is done at once never lets it have one: timers and sockets
// would wait for as long as its loop over the store takes. So after a while a call goes to the pool, and what it is awaited for comes
// with the loop's next turn. Each worker thread has a loop of its own, and loads this file anew.

const { performance } = require('node:perf_hooks')
const { setImmediate } = require('node:timers')

/** Calls may run at once for as long. Handing one over costs a sixtieth of it. */
const LONGEST_MS = 2

let began

function turned () {
  began = undefined
}

/** Whether a call may keep the loop from its turn. */
function isYoung () {
  const now = performance.now()
  if (began === undefined) {
    began = now
    setImmediate(turned)
    return true
  }
  return now - began < LONGEST_MS
}

exports.isYoung = isYoung

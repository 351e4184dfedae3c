'use strict'

// The public suite of abstract-level, as it is.

const test = require('tape')
const suite = require('abstract-level/test')
const { EskerLevel } = require('../..')
const { temporary } = require('../places')

suite({
  test,
  factory (options) {
    return new EskerLevel(temporary(), options)
  }
})

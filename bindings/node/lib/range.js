'use strict'

const { toBytes } = require('./bytes')

/** Of a bound that an encoding leaves away there is none. */
function bound (encoded) {
  return encoded === undefined || encoded === null ? undefined : toBytes(encoded)
}

/**
 * The options of a walk of the native part, of those of a range that abstract-level has normalized. The inclusive bound counts where
 * both are given, as in other Level databases.
 */
function walkOptions (options, keys, values) {
  return {
    gte: bound(options.gte),
    gt: bound(options.gt),
    lte: bound(options.lte),
    lt: bound(options.lt),
    reverse: options.reverse === true,
    keys,
    values,
    keysAsStrings: options.keyEncoding === 'utf8',
    valuesAsStrings: options.valueEncoding === 'utf8'
  }
}

exports.walkOptions = walkOptions

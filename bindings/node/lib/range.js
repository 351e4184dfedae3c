'use strict'

/**
 * The options of a walk of the native part, of those of a range that abstract-level has normalized. The inclusive bound counts where
 * both are given, as in other Level databases.
 */
function walkOptions (options, keys, values) {
  return {
    gte: options.gte,
    gt: options.gt,
    lte: options.lte,
    lt: options.lt,
    reverse: options.reverse === true,
    keys,
    values,
    keysAsStrings: options.keyEncoding === 'utf8',
    valuesAsStrings: options.valueEncoding === 'utf8'
  }
}

exports.walkOptions = walkOptions

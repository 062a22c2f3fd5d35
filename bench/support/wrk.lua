-- Prints what wrk counted as one line of JSON.
function done(summary, latency, requests)
   local e = summary.errors
   local failed = e.connect + e.read + e.write + e.status + e.timeout
   io.write(string.format('figures {"requests":%d,"errors":%d,"seconds":%.3f}\n',
                          summary.requests - e.status, failed, summary.duration / 1e6))
end

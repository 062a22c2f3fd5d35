# frozen_string_literal: true

module Pando
  class Config
    # Requests of one method and path that end worker after worker.
    Settings.group "Requests that end workers" do
      setting :poison_deaths,
              type: Types::Whole.new(1..1000), default: 3, unit: "workers", within: :poison, keyword: :deaths,
              help: "When one method and path has ended so many workers, the event `request.poison` names it.",
              notes: "By exit, SEGV, SIGKILL or whatever else. Workers that Pando itself ends, for a timeout or " \
                     "their memory, do not count. See [healing.md](healing.md#requests-that-end-workers).",
              example: "poison deaths: 3, within: 60, refuse: 300"

      setting :poison_within,
              type: Types::Seconds.new, default: 60.0, unit: "seconds", within: :poison, keyword: :within,
              help: "They must have ended within so many seconds."

      setting :poison_refuse,
              type: Types::OrOff.new(Types::Seconds.new), default: nil, unit: "seconds", within: :poison,
              keyword: :refuse,
              help: "How long that method and path is answered with 503 then, by the workers; false: it is served on.",
              notes: "`Retry-After` says how long that still is. All clients get it, also those whose request would " \
                     "have done no harm: the query, the fields and the body do not count. At most 64 are refused at " \
                     "the same time, and none whose path has 112 bytes or more."
    end
  end
end

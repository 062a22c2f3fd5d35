# frozen_string_literal: true

module Pando
  class Config
    # Requests of one method and path that kill worker after worker.
    Settings.group "Poison requests" do
      setting :poison_deaths,
              type: Types::Whole.new(1..1000), default: 3, unit: "workers", within: :poison, keyword: :deaths,
              help: "Emit `request.poison` when requests of one method and path have killed this many workers.",
              notes: <<~MARKDOWN,
                It does not matter how the workers die: by an exit, SEGV, SIGKILL or anything else. Workers that Pando
                itself ends, for a timeout or for their memory, do not count.
                See [healing](healing.md#requests-that-end-workers).
              MARKDOWN
              example: "poison deaths: 3, within: 60, refuse: 300"

      setting :poison_within,
              type: Types::Seconds.new, default: 60.0, unit: "seconds", within: :poison, keyword: :within,
              help: "The time within which that many workers must have died."

      setting :poison_refuse,
              type: Types::OrOff.new(Types::Seconds.new), default: nil, unit: "seconds", within: :poison,
              keyword: :refuse,
              help: "How long workers then answer that method and path with 503. false: they go on serving it.",
              notes: <<~MARKDOWN
                `Retry-After` gives the time that is left. All clients get the 503, even if their request would have
                done no harm: Pando does not look at the query, the header fields or the body. It refuses at most 64
                pairs of method and path at the same time, and never a path of 112 bytes or more.
              MARKDOWN
    end
  end
end

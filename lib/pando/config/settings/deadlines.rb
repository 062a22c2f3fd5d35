# frozen_string_literal: true

module Pando
  class Config
    # How long things may take.
    Settings.group "Deadlines" do
      setting :timeout,
              type: Types::OrOff.new(Types::Seconds.new), default: 20.0, development: nil, unit: "seconds",
              flags: %w[-t --timeout], argument: "SECONDS",
              help: "A request that takes longer is ended with Pando::RequestTimeout and answered with 504.",
              notes: "The worker is replaced afterwards. `env[\"pando.timeout\"]` extends or disables the deadline " \
                     "of one request. It ends when the head of the answer has been sent, see `timeout streaming:`.",
              example: "timeout 20, grace: 2, streaming: 600"

      setting :timeout_grace,
              type: Types::Seconds.new(zero: true), default: 2.0, development: 0.5, unit: "seconds",
              within: :timeout, keyword: :grace,
              help: "A request that has not ended this long after its timeout is killed with its worker."

      setting :timeout_streaming,
              type: Types::OrOff.new(Types::Seconds.new), default: nil, unit: "seconds", within: :timeout,
              keyword: :streaming,
              help: "How long an answer may take once its head has been sent. false: as long as the app likes.",
              notes: "A streamed body, an upgraded connection or a hijacked one is not a request that takes too " \
                     "long. With a number its time starts anew when its head is out, and then it is ended and " \
                     "killed as any other. Until it ends it keeps its worker busy; a rollout waits `stop_timeout` " \
                     "for it."

      setting :spawn_timeout,
              type: Types::Seconds.new, default: 60.0, development: 3600.0, unit: "seconds",
              help: "A worker, service or mold must be ready this long after it was ordered, or is killed.",
              example: "spawn_timeout 30"

      setting :boot_timeout,
              type: Types::Seconds.new, default: 300.0, development: 3600.0, unit: "seconds",
              help: "A mold that loads the application from scratch must be ready this long after its start.",
              notes: "It applies at the start of the server, and when no process is left that a worker could be " \
                     "forked from.",
              example: "boot_timeout 2.minutes"

      # Orchestrators kill after 30 seconds by default; the server must have ended by then.
      setting :stop_timeout,
              type: Types::Seconds.new, default: 25.0, unit: "seconds",
              help: "A graceful stop kills the workers that are still busy after this long.",
              notes: "Jobs and mails that libraries have queued inside a worker are done in this time, whenever one " \
                     "leaves; `work.dropped` names the rest. See docs/libraries.md.",
              example: "stop_timeout 60"

      setting :give_up_after,
              type: Types::OrOff.new(Types::Seconds.new), default: nil, unit: "seconds",
              within: :give_up, keyword: :after,
              help: "A server that has served, and cannot any more, ends after this long, with status 1.",
              notes: "When no worker of any pool has been ready for so long, and the last try has failed. " \
                     "false: it goes on trying. For a supervisor that can do more than start the server again, such " \
                     "as one that moves it to another machine. A server that cannot even start ends at once. See " \
                     "[healing](healing.md#when-nobody-serves).",
              example: "give_up after: 10.minutes"
    end
  end
end

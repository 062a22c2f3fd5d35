# frozen_string_literal: true

module Pando
  class Config
    # How long requests, starts and stops may take.
    Settings.group "Deadlines" do
      setting :timeout,
              type: Types::OrOff.new(Types::Seconds.new), default: 20.0, development: nil, unit: "seconds",
              flags: %w[-t --timeout], argument: "SECONDS",
              help: "Raise Pando::RequestTimeout in a request that takes longer, and answer it with 504.",
              notes: <<~MARKDOWN,
                Pando then replaces the worker. `env["pando.timeout"]` extends or disables the deadline of a single
                request. The deadline applies until the head of the response has been sent; for the rest see
                `timeout streaming:`.
              MARKDOWN
              example: "timeout 20, grace: 2, streaming: 600"

      setting :timeout_grace,
              type: Types::Seconds.new(zero: true), default: 2.0, development: 0.5, unit: "seconds",
              within: :timeout, keyword: :grace,
              help: "Kill the worker if its request has not ended this long after the timeout."

      setting :timeout_streaming,
              type: Types::OrOff.new(Types::Seconds.new), default: nil, unit: "seconds", within: :timeout,
              keyword: :streaming,
              help: "How long a response may take after its head has been sent. false: no limit.",
              notes: <<~MARKDOWN
                By default streamed bodies and upgraded or hijacked connections may last as long as the application
                likes. With a number, a new deadline begins when the head has been sent; Pando then ends the response
                like any request that takes too long. Until it ends, it keeps its worker busy. A rollout waits
                `stop_timeout` for it.
              MARKDOWN

      setting :spawn_timeout,
              type: Types::Seconds.new, default: 60.0, development: 3600.0, unit: "seconds",
              help: "Kill a worker, service or forked mold that is not ready this long after Pando ordered it.",
              example: "spawn_timeout 30"

      setting :boot_timeout,
              type: Types::Seconds.new, default: 300.0, development: 3600.0, unit: "seconds",
              help: "How long a mold may take to load the application from scratch (a cold boot).",
              notes: <<~MARKDOWN,
                It applies when the server starts, at a reload, and when no process is left from which Pando could fork
                a worker. At a reload the config file must also be read within this time.
              MARKDOWN
              example: "boot_timeout 2.minutes"

      # Orchestrators kill after 30 seconds by default; the server must have ended by then.
      setting :stop_timeout,
              type: Types::Seconds.new, default: 25.0, unit: "seconds",
              help: "How long a graceful stop waits before it kills the workers that are still busy.",
              notes: <<~MARKDOWN,
                The time also bounds what a leaving worker does for libraries that have queued jobs or mails inside it:
                it works on them for up to four fifths of this time. The event `work.dropped` names the rest.
                See [libraries](libraries.md#work-that-is-queued-in-a-worker).
              MARKDOWN
              example: "stop_timeout 60"

      setting :give_up_after,
              type: Types::OrOff.new(Types::Seconds.new), default: nil, unit: "seconds",
              within: :give_up, keyword: :after,
              help: "How long a server without any ready worker keeps trying before it exits with status 1.",
              notes: <<~MARKDOWN,
                The server exits when no worker of any pool has been ready for this long and the last attempt to start
                one has failed. With `false` it never stops trying. Set a time if your supervisor can do more than
                restart the server, for instance move it to another machine. A server that cannot even start exits at
                once. See [healing](healing.md#when-nobody-serves).
              MARKDOWN
              example: "give_up after: 10.minutes"
    end
  end
end

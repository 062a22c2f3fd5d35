# frozen_string_literal: true

require "pando/fork_safety/libraries/cable_server"

Pando::ForkSafety::Libraries::Known.describe "actioncable" do
  handled note: "Its event loop, thread pools and subscription adapter are stopped before the fork, and start anew when " \
                "they are used. Its clients are told to connect again (docs/action_cable.md).",
          source: "https://github.com/rails/rails/blob/v8.1.1/actioncable/lib/action_cable/server/base.rb"
  say_goodbye { Pando::ForkSafety::Libraries::CableServer.say_goodbye }
  before_fork { Pando::ForkSafety::Libraries::CableServer.stop }
  in_child { Pando::ForkSafety::Libraries::CableServer.forget }
  before_exit { |seconds| Pando::ForkSafety::Libraries::CableServer.stop(seconds) }
  revives_threads at: %r{/action_cable/(?:connection|server|subscription_adapter)/\w+\.rb:\d+\z}
end

# frozen_string_literal: true

require "pando/fork_safety/libraries/cable_server"

Pando::ForkSafety::Libraries::Known.describe "solid_cable" do
  handled note: "What it has queued is written before the fork. Its writer and its listener start anew when they are " \
                "used, see actioncable.",
          source: "https://github.com/rails/solid_cable/blob/v4.1.0/lib/solid_cable/batched_broadcaster.rb"
  before_fork { Pando::ForkSafety::Libraries::CableServer.stop }
  revives_threads at: %r{/(?:solid_cable/batched_broadcaster|action_cable/subscription_adapter/solid_cable)\.rb:\d+\z}
end

# frozen_string_literal: true

require "pando/fork_safety/libraries/cable_server"
require "pando/fork_safety/libraries/selectors"

# Action Cable and its adapters. These rows come first, because ActiveRecord writes what solid_cable has queued.
Pando::ForkSafety::Libraries::Known.define do
  server = Pando::ForkSafety::Libraries::CableServer
  selectors = Pando::ForkSafety::Libraries::Selectors

  describe "actioncable", constant: "ActionCable::Server::Base", tested: true do
    handled note: "Pando stops its event loop, thread pools and subscription adapter before the fork. They start " \
                  "again when they are used. Pando tells its clients to reconnect (docs/action_cable.md).",
            source: "https://github.com/rails/rails/blob/v8.1.1/actioncable/lib/action_cable/server/base.rb"
    say_goodbye { server.say_goodbye }
    before_fork { server.stop }
    in_child { server.forget }
    before_exit { |seconds| server.stop(seconds) }
    revives_threads at: %r{/action_cable/(?:connection|server|subscription_adapter)/\w+\.rb:\d+\z}
  end

  describe "solid_cable", constant: "SolidCable", tested: true do
    handled note: "Its queued broadcasts are written before the fork. Its writer and its listener start again when " \
                  "they are used; see actioncable.",
            source: "https://github.com/rails/solid_cable/blob/v4.1.0/lib/solid_cable/batched_broadcaster.rb"
    before_fork { server.stop }
    files = %w[solid_cable/batched_broadcaster action_cable/subscription_adapter/solid_cable]
    revives_threads at: %r{/(?:#{files.join("|")})\.rb:\d+\z}
  end

  describe "nio4r", constant: "NIO::Selector", tested: true do
    handled note: "A child would share a selector's epoll set, so Pando does not promote a worker with an open " \
                  "selector. It closes Action Cable's selector before the fork.",
            source: "https://github.com/socketry/nio4r/blob/main/ext/nio4r/selector.c (no ev_loop_fork)"
    watch { selectors.watch }
    before_fork { selectors.refuse_live }
  end
end

# frozen_string_literal: true

require "pando/fork_safety/weak_set"
require "pando/sys"

module Pando
  module HTTP
    # Marks the connections of a child that the application has forked: their clients are the parent's. One per process
    # that serves requests; a child inherits it. It costs a fork a little, and a request nothing.
    module Stray
      @connections = ForkSafety::WeakSet.new

      class << self
        # @param connection [Connection] is not kept alive
        def watch(connection) = @connections.add(connection)

        # @yield forks: returns in two processes, or raises in one or both of them
        def after
          forks = Sys.forks
          yield
        ensure
          @connections.to_a.each(&:mark_stray) if Sys.forks != forks
        end
      end

      # Around Ruby's own forks, as ForkSafety::Callbacks::ForkHook.
      module ForkHook
        def _fork = Stray.after { super }
        def daemon(*) = Stray.after { super }

        Process.singleton_class.prepend(self)
      end
    end
  end
end

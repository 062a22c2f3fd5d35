# frozen_string_literal: true

module Pando
  module Cluster
    # What a child keeps from role to role: the shared things it inherited.
    #
    #   listeners        Array<Listener>; behind a reactor no more than their names
    #   channel          the reactor's shared memory, and
    #   reactor_eventfd  what wakes it; IOs, nil in direct mode
    #   pool             the name of its pool; nil: there is but one
    #
    # @api private
    Context = Struct.new(:monitor_pid, :scoreboard, :listeners, :channel, :reactor_eventfd, :pool, :payload,
                         keyword_init: true) do
      def options = payload.options

      # In a service, or in the process that is to be another pool's first: what belongs to clients is not its business.
      # @param name [String, nil] of the pool
      # @return [Context]
      def of_pool(name)
        ios.each(&:close)
        self.class.new(**to_h, pool: name, listeners: [], channel: nil, reactor_eventfd: nil)
      end

      # @return [Array<IO>] what must stay open whatever the application closes
      def ios = [*listeners.map(&:socket), channel, reactor_eventfd].compact
    end
  end
end

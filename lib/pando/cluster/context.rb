# frozen_string_literal: true

module Pando
  module Cluster
    # What a child keeps from role to role: the shared things it inherited.
    #
    #   listeners        Array<Listener>
    #   channel          the reactor's shared memory, and
    #   reactor_eventfd  what wakes it; IOs, nil in direct mode
    #
    # @api private
    Context = Struct.new(:monitor_pid, :scoreboard, :listeners, :channel, :reactor_eventfd, :payload,
                         keyword_init: true) do
      def options = payload.options

      # @return [Array<IO>] what must stay open whatever the application closes
      def ios = [*listeners.map(&:socket), channel, reactor_eventfd].compact
    end
  end
end

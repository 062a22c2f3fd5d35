# frozen_string_literal: true

module Pando
  module ForkSafety
    module Libraries
      # The WebSockets that an application serves by websocket-driver, as faye-websocket does. Action Cable does so too,
      # but has told its clients to connect again before this module is asked, see {CableServer}.
      #
      # @api private
      module WebSockets
        # Close codes (RFC 6455 section 7.4.1, and IANA's registry for 1012), with their reasons for the client.
        GOING_AWAY = [1001, "the server stops"].freeze
        RESTART = [1012, "the server restarts: connect again"].freeze

        # Sends each client a close frame.
        #
        # @param stopping [Boolean] whether the server stops; false: this worker is replaced
        # @return [Boolean] whether there were any clients
        def self.close(stopping)
          code, reason = stopping ? GOING_AWAY : RESTART
          open = ObjectSpace.each_object(WebSocket::Driver).select { |driver| served?(driver) }
          open.each { |driver| attempt { driver.close(reason, code) } }
          open.any?
        end

        # An outgoing connection of the application's own is left to it.
        def self.served?(driver)
          driver.state == :open && !driver.is_a?(WebSocket::Driver::Client)
        rescue StandardError
          false # it is being made
        end

        def self.attempt
          yield
        rescue StandardError
          nil # the client has gone
        end
        private_class_method :served?, :attempt
      end
    end
  end
end

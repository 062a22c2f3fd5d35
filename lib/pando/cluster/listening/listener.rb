# frozen_string_literal: true

module Pando
  module Cluster
    module Listening
      # A listening socket, and what a process must know of it that has it: the monitor, which opened
      # it, and molds and workers, which inherited it. Behind a reactor these know of it, and do not have it.
      #
      # @api private
      class Listener
        PROXIED = 1
        HELD = 2
        WRITTEN = /\A(\d{1,4})(p?)(h?)\z/

        # @return [Integer] what reactor and workers know it by, as long as it lives; not its place in the configuration
        attr_reader :number
        # @return [Socket, nil]
        attr_reader :socket

        # @param text [String] as #encode wrote it
        # @param socket [Socket]
        # @return [Listener, nil] nil when malformed
        def self.decode(text, socket)
          match = WRITTEN.match(text) or return
          new(socket, number: match[1].to_i, proxied: !match[2].empty?, held: !match[3].empty?)
        end

        # @param proxied [Boolean] each connection opens with a PROXY header
        # @param held [Boolean] a service manager has it too, and goes on listening: it is never shut down
        def initialize(socket, number: 0, proxied: false, held: false)
          @socket = socket
          @number = number
          @proxied = proxied
          @held = held
        end

        def proxied? = @proxied
        def held? = @held
        def fileno = socket.fileno
        def local_address = @local_address || socket.local_address

        # @return [Integer] as the reactor wants them (ext/pando/http/reactor.h)
        def flags = (proxied? ? PROXIED : 0) | (held? ? HELD : 0)

        # @return [String] for .decode
        def encode = "#{number}#{"p" if proxied?}#{"h" if held?}"

        # A client that is refused at once can go elsewhere.
        def refuse
          ListenerSocket.refuse(socket) unless held?
        end

        # In a process that was handed it.
        def close = socket.close

        # In a process that only has to know its address.
        def leave_to_reactor
          @local_address = local_address
          close
          @socket = nil
        end
      end
    end
  end
end

require "pando/cluster/listening/listener_socket"

# frozen_string_literal: true

require "pando/fork_safety"
require "pando/http/errors"
require "socket"

module Pando
  module HTTP
    # How a {Client} or a {LaneClient} gives its connection away. Each of them
    # answers `over?`, `sent` and `take_over`, where they differ. What both do with the
    # {Timeout} of the request is here too.
    #
    # @api private
    module Handover
      # The connection's socket, as applications know sockets: a TCPSocket or a
      # UNIXSocket, in the hands of this process alone (a mold that is forked while it
      # is open is cut off from it).
      #
      # @param descriptor [Integer] which is now the socket's
      # @param received [String] what the client has sent already: read first, and
      #   IO.select knows of it
      # @return [TCPSocket, UNIXSocket]
      def self.socket(descriptor, received)
        kind = Sys.borrow(descriptor, Socket) { |any| any.local_address.ip? ? TCPSocket : UNIXSocket }
        socket = kind.for_fd(descriptor)
        socket.ungetbyte(received) unless received.empty?
        ForkSafety.keep_from_children(socket)
        socket
      end

      # All of the connection, instead of an answer.
      #
      # @return [TCPSocket, UNIXSocket] the application's from now on
      # @raise [IOError] the answer has begun, or is over
      # @raise [ClientGone]
      def hijack
        raise IOError, "the request is over: its connection is not to be had any more" if over?
        raise IOError, "the response has begun: the connection is not to be had any more" if sent.positive?

        take_over.tap { answering }
      end

      # For an answer that goes on when the application has returned.
      #
      # @return [DetachedClient]
      # @raise [ClientGone]
      def detach
        DetachedClient.new(take_over, @write_timeout)
      end

      # The application's answer is about to begin.
      #
      # @raise [RequestTimeout] it comes too late
      # @return [void]
      def check_timeout = @timeout&.check

      # The head of the application's answer is out, or its connection is the application's.
      #
      # @return [void]
      def answering = @timeout&.answering

      # @return [Boolean] whether somebody else answers on this connection
      def handed_over?
        @handed_over || false
      end

      # @return [Boolean] whether the server can still answer as it likes
      def unanswered?
        !handed_over? && sent.zero?
      end
    end
  end
end

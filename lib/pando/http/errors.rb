# frozen_string_literal: true

require "pando/errors"

module Pando
  module HTTP
    # The client cannot be reached any more. An IOError, so that an application that streams may treat it as an error of
    # a socket.
    #
    # @api public
    class ClientGone < IOError; end

    # The client sends or takes its bytes more slowly than the settings allow.
    #
    # @api public
    class ClientTooSlow < ClientGone; end

    # The connection does not begin with a PROXY header.
    class NoProxy < ClientGone; end

    # The server answers this request itself, and the application does not get it.
    #
    # @api public
    class Refused < Pando::Error
      # @return [Integer]
      attr_reader :status
      # @return [Hash{String => String}] beside the usual ones
      attr_reader :fields

      # @param status [Integer] what to answer
      # @param reason [String] for the log, not for the client
      def initialize(status, reason, fields = {})
        super(reason)
        @status = status
        @fields = fields
      end
    end

    # The application's response cannot be sent as it is: a field that would
    # inject others, an impossible status, a body shorter than its Content-Length.
    #
    # @api public
    class InvalidResponse < Pando::Error; end
  end
end

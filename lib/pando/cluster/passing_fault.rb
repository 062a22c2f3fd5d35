# frozen_string_literal: true

module Pando
  module Cluster
    # Tells which errors of a process that starts are none of its own: the kernel refuses something, or a server that it
    # needs (a database, a broker) is out of reach. The same may succeed a moment later.
    #
    # Used in molds, workers and services that fail before they are ready.
    #
    # @api private
    module PassingFault
      # What it refuses for want of something, and what connections come to.
      KERNELS = [
        Errno::EAGAIN, Errno::EMFILE, Errno::ENFILE, Errno::ENOBUFS, Errno::ENOMEM, NoMemoryError,
        Errno::ECONNABORTED, Errno::ECONNREFUSED, Errno::ECONNRESET, Errno::EHOSTDOWN, Errno::EHOSTUNREACH,
        Errno::ENETDOWN, Errno::ENETUNREACH, Errno::EPIPE, Errno::ETIMEDOUT
      ].freeze
      # What libraries that are not loaded everywhere make of it, by the names of their classes. Most of these errors
      # have one of the kernel's as their cause, but not those of drivers in C, nor those of a name without an address.
      OF_LIBRARIES = %w[
        SocketError IO::TimeoutError Timeout::Error
        ActiveRecord::ConnectionFailed ActiveRecord::ConnectionNotEstablished ActiveRecord::ConnectionTimeoutError
        PG::ConnectionBad PG::UnableToSend Mysql2::Error::ConnectionError Trilogy::ConnectionError
        RedisClient::ConnectionError RedisClient::TimeoutError Redis::BaseConnectionError
        Bunny::TCPConnectionFailed Bunny::NetworkFailure Mongo::Error::NoServerAvailable Dalli::NetworkError
      ].freeze
      # As Ruby says that there can be no more of them.
      THREAD = /\Acan't create Thread/
      private_constant :KERNELS, :OF_LIBRARIES, :THREAD

      class << self
        # @param error [Exception]
        # @return [Boolean] whether it, or what it was caused by, is one
        def of?(error) = causes(error).any? { |one| KERNELS.any? { |kind| one.is_a?(kind) } || told?(one) }

        private

        # A cause may be its own.
        def causes(error)
          causes = []
          while error && causes.none? { |known| known.equal?(error) }
            causes << error
            error = error.cause
          end
          causes
        end

        def told?(error)
          return THREAD.match?(error.message) if error.is_a?(ThreadError)

          error.class.ancestors.any? { |one| OF_LIBRARIES.include?(one.name) }
        end
      end
    end
  end
end

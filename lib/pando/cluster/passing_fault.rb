# frozen_string_literal: true

module Pando
  module Cluster
    # Recognizes errors of a starting process that are not its fault: the kernel refuses something, or a server that it
    # needs (a database, a broker) is out of reach. The same start may succeed a moment later. Used in molds, workers
    # and services that fail before they are ready.
    module PassingFault
      # Errors of the kernel when resources are short, and errors of connections.
      KERNELS = [
        Errno::EAGAIN, Errno::EMFILE, Errno::ENFILE, Errno::ENOBUFS, Errno::ENOMEM, NoMemoryError,
        Errno::ECONNABORTED, Errno::ECONNREFUSED, Errno::ECONNRESET, Errno::EHOSTDOWN, Errno::EHOSTUNREACH,
        Errno::ENETDOWN, Errno::ENETUNREACH, Errno::EPIPE, Errno::ETIMEDOUT
      ].freeze
      # Errors of libraries, by class name, since the libraries are not loaded everywhere. Most such errors have one of
      # the kernel's as their cause, but not those of drivers in C, nor those of failed name lookups.
      OF_LIBRARIES = %w[
        SocketError IO::TimeoutError Timeout::Error
        ActiveRecord::ConnectionFailed ActiveRecord::ConnectionNotEstablished ActiveRecord::ConnectionTimeoutError
        PG::ConnectionBad PG::UnableToSend Mysql2::Error::ConnectionError Trilogy::ConnectionError
        RedisClient::ConnectionError RedisClient::TimeoutError Redis::BaseConnectionError
        Bunny::TCPConnectionFailed Bunny::NetworkFailure Mongo::Error::NoServerAvailable Dalli::NetworkError
      ].freeze
      # Ruby's message when there can be no more threads.
      THREAD = /\Acan't create Thread/
      private_constant :KERNELS, :OF_LIBRARIES, :THREAD

      class << self
        # @return [Boolean] whether the error, or one of its causes, is a passing fault
        def of?(error) = causes(error).any? { |one| KERNELS.any? { |kind| one.is_a?(kind) } || told?(one) }

        private

        # An error may be its own cause.
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

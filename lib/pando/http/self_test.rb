# frozen_string_literal: true

require "pando/errors"
require "io/nonblock"
require "socket"

module Pando
  module HTTP
    # Requests that a worker sends itself: through the whole of HTTP and the application, as any other, with its
    # deadline. In each new worker before it takes traffic, if `self_test` is set; in a canary on a quiet server for
    # each of the paths that the application calls safe.
    #
    # @api private
    class SelfTest
      # The application did not answer it as it should; the worker must not become ready.
      class Failed < Pando::Error; end

      # What of the answer is read: it begins with the status.
      HEAD = 4096
      FIELDS = "HTTP/1.1\r\nhost: localhost\r\nuser-agent: pando self-test\r\nconnection: close\r\n\r\n"

      class << self
        # @param request [String, nil] "GET /up"; nil: there is none
        # @param worker [Cluster::Worker]
        # @yieldparam descriptor [Integer] of the socket that it comes from, which is now the block's
        # @raise [Failed]
        def run(request, worker, &serve)
          apart(worker) { new(request, "the self-test").run(&serve) } if request
        end

        # @param paths [Array<String>]
        # @param worker [Cluster::Worker]
        # @yieldparam descriptor [Integer] as for {run}
        # @return [String] what was requested and the status of each answer; empty: nothing was
        # @raise [Failed]
        def replay(paths, worker, &serve)
          answers = paths.map do |path|
            request = "GET #{path}"
            "#{request} #{apart(worker) { new(request, "the replay of").run(&serve) }}"
          end
          answers.join(", ")
        end

        private

        # Such a request is not a client's, and is not counted. If clients' requests came first, it counts like them:
        # their record cannot be kept without it.
        def apart(worker)
          first = worker.requests.zero?
          yield
        ensure
          worker.forget_jobs if first
        end
      end

      # @param request [String] @param purpose [String] for the message of a failure
      def initialize(request, purpose)
        @request = request
        @purpose = purpose
      end

      # @return [Integer] the status
      # @raise [Failed]
      def run(&serve)
        status = status(answer(&serve))
        raise Failed, "#{@purpose} #{@request} had no answer" unless status
        raise Failed, "#{@purpose} #{@request} was answered with #{status}" if status >= 500

        status
      end

      private

      # The thread is there for answers that are larger than a socket's buffer.
      def answer
        ours, theirs = UNIXSocket.pair
        theirs.nonblock = true
        ours.write("#{@request} #{FIELDS}")
        reader = Thread.new { read(ours) }
        yield Sys.disown(theirs)
        reader.value
      ensure
        ours&.close
        reader&.join
      end

      def read(socket)
        head = socket.read(HEAD)
        nil while head && socket.read(65_536)
        head
      rescue SystemCallError, IOError
        head
      end

      def status(head) = head && head[%r{\AHTTP/1\.\d (\d{3})}, 1]&.to_i
    end
  end
end

# frozen_string_literal: true

require "pando/errors"
require "io/nonblock"
require "socket"

module Pando
  module HTTP
    # The request that a worker sends itself before it takes traffic: through the whole of HTTP and the application, as
    # any other, with its deadline. In each new worker.
    #
    # @api private
    class SelfTest
      # The application did not answer it as it should; the worker must not become ready.
      class Failed < Pando::Error; end

      # What of the answer is read: it begins with the status.
      HEAD = 4096
      FIELDS = "HTTP/1.1\r\nhost: localhost\r\nuser-agent: pando self-test\r\nconnection: close\r\n\r\n"

      # @param request [String, nil] "GET /up"; nil: there is none
      # @param worker [Cluster::Worker]
      # @yieldparam descriptor [Integer] of the socket that it comes from, which is now the block's
      # @raise [Failed]
      def self.run(request, worker, &serve) = (new(request, worker).run(&serve) if request)

      def initialize(request, worker)
        @request = request
        @worker = worker
      end

      def run(&serve)
        status = status(answer(&serve))
        raise Failed, "the self-test #{@request} had no answer" unless status
        raise Failed, "the self-test #{@request} was answered with #{status}" if status >= 500
      ensure
        @worker.forget_jobs # it was none of a client's
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

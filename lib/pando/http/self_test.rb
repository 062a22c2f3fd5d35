# frozen_string_literal: true

require "pando/errors"
require "pando/http/connection"
require "pando/http/environment"
require "pando/http/limits"
require "pando/http/request_reader"
require "pando/http/socket_client"
require "pando/http/timeout"
require "socket"

module Pando
  module HTTP
    # Requests that a worker sends itself: through the whole of HTTP and the application, with a deadline as any other.
    # In each new worker before it takes traffic, if `self_test` is set; in a canary on a quiet server for each of the
    # paths that the configuration calls safe.
    module SelfTest
      # The application's answer was wrong; the worker must not become ready.
      class Failed < Pando::Error; end

      # Bytes of the answer that are read: it begins with the status.
      HEAD = 4096
      FIELDS = "HTTP/1.1\r\nhost: localhost\r\nuser-agent: pando self-test\r\nconnection: close\r\n\r\n"

      class << self
        # @param request [String, nil] "GET /up"; nil: there is none
        # @yieldparam descriptor [Integer] of the socket that the request comes from, which is now the block's
        def run(request, worker, &serve)
          ask(request, worker, "the self-test", &serve) if request
        end

        # @return [String] each request and the status of its answer; empty: there were none
        def replay(paths, worker, &serve)
          paths.map { |path| "GET #{path} #{ask("GET #{path}", worker, "the replay of", &serve)}" }.join(", ")
        end

        private

        # Such a request does not count, because it is not a client's. If clients' requests came first, it counts like
        # them: their record cannot be kept without it.
        def ask(request, worker, purpose, &serve)
          first = worker.requests.zero?
          status = answer(request, &serve).to_s[%r{\AHTTP/1\.\d (\d{3})}, 1]&.to_i
          raise Failed, "#{purpose} #{request} had no response" unless status
          raise Failed, "#{purpose} #{request} was answered with #{status}" if status >= 500

          status
        ensure
          worker.forget_jobs if first
        end

        # The thread reads answers that are larger than a socket's buffer.
        def answer(request)
          ours, theirs = UNIXSocket.pair
          ours.write("#{request} #{FIELDS}")
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
      end
    end

    # One request to an application of our own, in the mold of a cold boot. What Ruby caches when code runs for the
    # first time (where a method is, what a constant means) then lies in memory that all workers share, and not in each
    # one's.
    module WarmUp
      REQUEST = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
      APP = ->(_env) { [200, { "content-type" => "text/plain" }, ["well"]] }

      # @param listener [Socket, nil] whose address the request names
      def self.run(config, listener)
        return unless listener

        ours, theirs = UNIXSocket.pair
        ours.write(REQUEST)
        serve(config, listener, theirs)
        nil
      rescue StandardError
        nil
      ensure
        [ours, theirs].compact.each(&:close)
      end

      def self.serve(config, listener, socket)
        limits = Limits.new(config)
        connection = Connection.new(APP, NoWorker, limits, SocketReader.new(limits), SoftTimeout.new(NoWorker))
        client = SocketClient.new(Sys.disown(socket.dup), limits.write_timeout) # which closes it
        connection.serve(client, Environment.new(listener))
      end
      private_class_method :serve
    end
  end
end

# frozen_string_literal: true

require "pando/http/client"
require "pando/http/connection"
require "pando/http/environment"
require "pando/http/worker_context"
require "pando/http/limits"
require "pando/http/no_worker"
require "pando/http/request_reader"
require "pando/http/soft_timeout"
require "socket"

module Pando
  module HTTP
    # One request of our own, to an application of our own, in the mold of a cold boot. What Ruby notes down when code
    # runs for the first time (where a method is, what a constant means) then lies in memory that all workers share,
    # and not in each one's.
    #
    # @api private
    module Rehearsal
      REQUEST = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
      APP = ->(_env) { [200, { "content-type" => "text/plain" }, ["well"]] }

      # @param config [Config]
      # @param listener [Socket, nil] whose address the request names
      # @return [nil] also if it went wrong: nothing depends on it
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
        context = WorkerContext.new(APP, NoWorker, limits, RequestReader.new(limits), SoftTimeout.new(NoWorker), Process.pid,
                      Sys.forks)
        client = Client.new(Sys.disown(socket.dup), limits.write_timeout) # which closes it
        Connection.new(context).serve(client, Environment.new(listener))
      end
      private_class_method :serve
    end
  end
end

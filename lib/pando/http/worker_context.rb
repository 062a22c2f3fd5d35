# frozen_string_literal: true

require "pando/http/soft_timeout"
require "pando/sys"

module Pando
  module HTTP
    # What a connection needs of its worker: the application, the worker object,
    # {Limits}, the reader of requests, the {SoftTimeout}, its pid and how many forks led
    # to it. One per worker.
    #
    # @api private
    WorkerContext = Struct.new(:app, :worker, :limits, :reader, :soft_timeout, :pid, :forks) do
      # @param worker [Cluster::Worker] of this process
      def self.for(worker, app, limits, reader)
        new(app, worker, limits, reader, SoftTimeout.new(worker).install, Process.pid, Sys.forks)
      end

      # @return [Boolean] whether this is a process that the application forked
      def stray? = Sys.forks != forks
    end
  end
end

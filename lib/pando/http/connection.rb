# frozen_string_literal: true

require "pando/events"
require "pando/http/client_handle"
require "pando/http/early_hints"
require "pando/http/exchange"
require "pando/http/request"

module Pando
  module HTTP
    # One request from its first byte to the end of its answer, and in direct mode
    # all of its connection. No client, however broken, makes {#serve} raise. One per
    # worker, for one client after the other: a request is too short for objects of
    # its own.
    #
    # @api private
    class Connection
      # @param context [WorkerContext]
      def initialize(context)
        @context = context
        @exchange = Exchange.new(context)
        @spare_request = Request.new
      end

      # @param client [Client, LaneClient]
      # @param environment [Environment] of the listener that he came by
      # @raise [HookError, SystemExit, SignalException] what the application's own code asks for
      def serve(client, environment)
        @client = client
        @environment = environment
        @closed = false
        read
      ensure
        @client.reset unless @closed
        forget
      end

      private

      def read
        @context.reader.read_head(@client) ? work : close
      rescue Refused => e
        refuse(e)
      rescue NoProxy => e
        Events.emit("proxy.refused", slot: worker.slot, generation: worker.generation, pid: Process.pid,
                                     remote: @client.remote, reason: e.message)
        close
      rescue ClientGone
        close
      end

      # What an idle worker holds on to is memory that nobody else can have.
      def forget
        @client = @request = @spool = nil
        @spare_request.forget
      end

      def reader = @context.reader
      def worker = @context.worker

      def work
        parser = reader.parser
        env = @environment.build(parser, reader.buffer, @client.remote)
        introduce_client(env, parser)
        @request = @spare_request.begin(env, parser.minor)
        refuse_what_we_are_not(parser)
        refuse_what_ends_workers
        worker.job_started(@request.verb, @request.path, nil, nil)
        begin
          @request.attach(@spool = reader.read_body(@client, @request.path))
          exchange
        rescue SystemExit, SignalException => e
          raise # and the monitor sees which request ended this process
        ensure
          @spool&.close
          worker.job_finished unless e
        end
      end

      def introduce_client(env, parser)
        @client.introduce(env, reader)
        env["rack.hijack"] = env["pando.client"] = ClientHandle.new(@client, env)
        env["rack.early_hints"] = EarlyHints.new(@client) if @context.limits.early_hints && parser.minor.positive?
      end

      def exchange
        @exchange.run(@client, @request)
      ensure
        @exchange.whole? ? close(reader.unfinished?) : lose
        @exchange.finish
      end

      def refuse_what_we_are_not(parser)
        raise Refused.new(501, "CONNECT is for proxies") if parser.connect?
        raise Refused.new(421, "https on a plain connection") if parser.https?
      end

      def refuse_what_ends_workers
        seconds = worker.refused_for(@request.verb, @request.path) or return
        raise Refused.new(503, "#{@request.verb} #{@request.path} has ended workers", "retry-after" => seconds.to_s)
      end

      def refuse(refused)
        Events.emit("request.refused", slot: worker.slot, generation: worker.generation, pid: Process.pid,
                                       status: refused.status, reason: refused.message, remote: @client.remote,
                                       method: @request&.verb, path: @request&.path)
        @client.last!
        Response.plain(@client, @request, refused.status, refused.fields).deliver
        close(true)
      rescue ClientGone
        close
      end

      # @param linger [Boolean] the client is still to be read
      def close(linger = false) # rubocop:disable Style/OptionalBooleanParameter -- a keyword costs every request
        @closed = true
        @client.finish(reader.buffer, linger)
      end

      def lose
        tell_of_slow_reader if @client.slow_rate
        reset
      end

      def tell_of_slow_reader
        worker.reader_lost("#{@client.remote || "a client without an address"}, #{@client.slow_rate} bytes/s",
                           "#{@request.verb} #{@request.path}")
      end

      def reset
        @closed = true
        @client.reset
      end
    end
  end
end

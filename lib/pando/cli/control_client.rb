# frozen_string_literal: true

require "socket"
require "pando/cluster/control/line"
require "pando/errors"

module Pando
  module CLI
    # A client of the control socket. It sends one line, and reads records until `ok` or `failed`.
    class ControlClient
      Line = Cluster::Control::Line

      # There was no answer in time, or one that does not come from Pando.
      class Silent < Pando::Error; end

      # There was no answer in time. The server may still be working on the command.
      class Late < Silent; end

      # The server could not carry out the command. The message is its reason.
      class Refused < Pando::Error; end

      # Seconds between two tries to connect to a monitor whose queue is full.
      PAUSE = 0.05

      # @return [Boolean] whether a server listens there
      def self.listener?(path)
        socket_to(path).close
        true
      rescue Errno::EAGAIN
        true # its queue is full
      rescue SystemCallError, ArgumentError
        false
      end

      # UNIXSocket.new would give a socket that is not connected if the monitor's queue is full.
      # @return [Socket]
      # @raise [SystemCallError] EAGAIN: the queue is full
      # @raise [ArgumentError] the path is too long
      def self.socket_to(path)
        socket = Socket.new(:UNIX, :STREAM)
        socket.connect_nonblock(Socket.sockaddr_un(path))
        socket
      rescue SystemCallError, ArgumentError
        socket&.close
        raise
      end

      # @param socket [UNIXSocket, nil] that leads to the monitor; nil: it is reached by the path
      # @yield once the command is written
      def initialize(path, socket = nil, &written)
        @path = path
        @written = written
        @socket = socket
      end

      # @param timeout [Float, nil] seconds for everything; nil: no limit
      # @param descriptors [Array<IO>] to send along
      # @yieldparam word [String] @yieldparam pairs [Hash{String => String}] of each record before the last
      # @return [Array(String, Hash)] the last record, "ok" or "failed"
      # @raise [UsageError] no server listens there
      def ask(word, pairs = {}, timeout: nil, descriptors: [])
        @timeout = timeout
        deadline = timeout && (now + timeout)
        @socket ||= connect(deadline)
        connected { say(Line.encode(word, pairs), descriptors) }
        @written&.call
        loop do
          record = Line.decode(line(deadline)) or raise Silent, "the answer at #{@path} does not come from Pando"
          return record if %w[ok failed].include?(record.first)

          yield(*record)
        end
      ensure
        @socket&.close
      end

      # As {#ask}.
      # @return [Hash{String => String}] the pairs of "ok"
      # @raise [Refused] the last record is "failed"
      def ask!(word, pairs = {}, **options, &block)
        outcome, said = ask(word, pairs, **options, &block)
        raise Refused, said["reason"].to_s if outcome == "failed"

        said
      end

      private

      # Waits for its place in the monitor's queue.
      def connect(deadline)
        self.class.socket_to(@path)
      rescue Errno::EAGAIN
        raise Silent, "#{late}, and the command was not sent" if deadline && now >= deadline

        sleep(PAUSE)
        retry
      rescue SystemCallError, ArgumentError => e
        raise UsageError, unreachable(e)
      end

      def unreachable(error)
        case error
        when Errno::ENOENT, Errno::ECONNREFUSED
          "no server listens at #{@path}. Is it running, with this `control` setting? " \
          "To use another socket, add --control PATH#{elsewhere}"
        when Errno::EACCES then "#{@path} belongs to another user: only root and the server's own user may use it"
        else "cannot connect to #{@path}: #{error.message}"
        end
      end

      def connected
        yield
      rescue Errno::EPIPE, Errno::ECONNRESET, EOFError
        raise Silent, "the server is gone"
      end

      def say(line, descriptors)
        return @socket.write(line) if descriptors.empty?

        @socket.sendmsg(line, 0, nil, Socket::AncillaryData.unix_rights(*descriptors))
      end

      # The folder may be a link to the current release.
      def elsewhere
        folder = File.dirname(@path)
        real = File.realpath(folder)
        return if real == folder

        ". (#{folder} is #{real} now; if the link has changed since the start, the socket is in the old folder)"
      rescue SystemCallError
        nil
      end

      # Reads the next line.
      def line(deadline)
        @lines ||= []
        @rest ||= +""
        while @lines.empty?
          left = deadline && [deadline - now, 0].max
          raise Late, late unless @socket.wait_readable(left)

          @rest << connected { @socket.readpartial(65_536) }
          @lines = @rest.slice!(0..@rest.rindex("\n")).lines if @rest.include?("\n")
        end
        @lines.shift
      end

      def late = "there was no answer within #{@timeout} s"

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end

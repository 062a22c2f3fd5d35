# frozen_string_literal: true

require "socket"
require "pando/cluster/control/line"
require "pando/errors"

module Pando
  module CLI
    # The other end of the control socket: says one line, and reads records until `ok` or `failed`.
    #
    # @api private
    class ControlClient
      Line = Cluster::Control::Line

      # No answer within the time, or one that is none of ours.
      class Silent < Pando::Error; end

      # It is at work, or seems to be.
      class Late < Silent; end

      # @param path [String]
      # @raise [UsageError] nobody listens there
      def initialize(path)
        @path = path
        @socket = UNIXSocket.new(path)
      rescue Errno::ENOENT, Errno::ECONNREFUSED
        raise UsageError, "no server listens at #{path}. Is it running, with this `control` setting? " \
                          "--control PATH names another socket#{elsewhere(path)}"
      rescue Errno::EACCES
        raise UsageError, "#{path} belongs to another user: only the server's own user and root may ask it"
      rescue SystemCallError, ArgumentError => e
        raise UsageError, "#{path} cannot be asked: #{e.message}"
      end

      # @param timeout [Float, nil] seconds for all; nil: as long as it takes
      # @param descriptors [Array<IO>] that go along
      # @yieldparam word [String] @yieldparam pairs [Hash{String => String}] of each record before the last
      # @return [Array(String, Hash)] the last record, "ok" or "failed"
      # @raise [Silent]
      def ask(word, pairs = {}, timeout: nil, descriptors: [])
        @timeout = timeout
        deadline = timeout && (now + timeout)
        say(Line.encode(word, pairs), descriptors)
        loop do
          record = Line.decode(line(deadline)) or raise Silent, "#{@path} answers something else than Pando would"
          return record if %w[ok failed].include?(record.first)

          yield(*record)
        end
      rescue Errno::EPIPE, Errno::ECONNRESET
        raise Silent, "the server is gone"
      ensure
        @socket.close
      end

      private

      def say(line, descriptors)
        return @socket.write(line) if descriptors.empty?

        @socket.sendmsg(line, 0, nil, Socket::AncillaryData.unix_rights(*descriptors))
      end

      # Such as a link to the release that is current.
      def elsewhere(path)
        folder = File.dirname(path)
        real = File.realpath(folder)
        ". (#{folder} is #{real} now; it was another folder if the link has changed since the start)" if real != folder
      rescue SystemCallError
        nil
      end

      # Reads on where the last line ended.
      def line(deadline)
        @buffer ||= +""
        until (whole = @buffer.slice!(/\A[^\n]*\n/))
          left = deadline && [deadline - now, 0].max
          raise Late, "there was no answer within #{@timeout} s" unless @socket.wait_readable(left)

          @buffer << @socket.readpartial(65_536)
        end
        whole
      rescue EOFError
        raise Silent, "the server is gone"
      end

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end

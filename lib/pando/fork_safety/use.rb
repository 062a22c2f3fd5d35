# frozen_string_literal: true

require "socket"
require "pando/fork_safety/audit/sites"
require "pando/fork_safety/descriptors"
require "pando/sys"

module Pando
  module ForkSafety
    # Tells which inherited descriptors a process uses. An inherited descriptor is harmless as long as at most one
    # process uses it. The doctor makes one object in each worker of its stage: it tells what the worker uses during
    # its turn, the time in which the doctor sends requests to this worker only. Strict test mode makes none, and takes
    # only the two kinds of evidence from here.
    #
    # Two kinds of evidence: the line of Ruby that reads or writes, and figures of the kernel that change (the
    # position of a file, the bytes of a TCP connection, the state of an event source). Only the second one sees
    # C code, and it sees no C code that uses a pipe or a UNIX socket.
    class Use
      # The number and the link are those in /proc/self/fd; `ios` are Ruby's objects for it.
      Inherited = Struct.new(:number, :link, :ios) do
        # Processes share only a file's position, which pread(2) does not change.
        def file? = link.start_with?("/")
      end
      STDIO = [0, 1, 2].freeze

      # @param own [Array<Integer>] descriptors that belong to Pando
      def initialize(own, ios = ObjectSpace.each_object(IO))
        by_number = ios.group_by { |io| Descriptors.number(io) }
        @inherited = Sys.descriptor_targets.except(*STDIO, *own).map do |number, link|
          Inherited.new(number, link, by_number.fetch(number, []))
        end
        @inherited.flat_map(&:ios).each { |io| Lines.over(io) }
      end

      # Begins the turn of this process.
      def start
        Lines.reset
        @before = @inherited.to_h { |one| [one.number, figures(one)] }
        nil
      end

      # Ends the turn.
      # @return [Array<Hash>] of each used descriptor: number, site ("file:line", nil if C code did it),
      #   and whether it had been used before the turn
      def used
        @inherited.filter_map do |one|
          site = one.ios.filter_map { |io| Lines.site(io) }.first
          before = @before&.fetch(one.number)
          next unless (site && !one.file?) || moved?(before, figures(one))

          { number: one.number, site: site, before: before.is_a?(Array) && before.any?(&:positive?) }
        end
      end

      # Figures of a descriptor that change when it is used.
      # @return [Object, nil] nil: there are none, or another file has the number by now
      def self.figures(number, link)
        return unless File.readlink("/proc/self/fd/#{number}") == link

        case link
        when /\Asocket:/ then Sys.borrow(number, BasicSocket) { |socket| Tcp.bytes(socket) }
        when /\Aanon_inode:/ then EventSource.state(File.read("/proc/self/fdinfo/#{number}"))
        when %r{\A/(?!dev/|proc/)} then [File.read("/proc/self/fdinfo/#{number}")[/^pos:\s*(\d+)/, 1].to_i]
        end
      rescue SystemCallError, SocketError
        nil # closed, or no TCP
      end

      private

      def figures(one) = Use.figures(one.number, one.link)

      # The time that a timer has left falls without any use; no other figure does.
      def moved?(before, after)
        return false if before.nil? || after.nil?
        return before != after unless before.is_a?(EventSource::Timer)

        before.setting != after.setting || (after.left > before.left && after.once?)
      end

      # Prepended to an IO: remembers the line that first used it.
      module Lines
        METHODS = %i[read readpartial read_nonblock sysread pread gets getc getbyte readline readlines readchar readbyte
                     each_line each_byte each_char ungetc recv recv_nonblock recvmsg recvmsg_nonblock recvfrom
                     write write_nonblock syswrite print puts putc printf << send sendmsg sendmsg_nonblock].freeze
        private_constant :METHODS

        METHODS.each do |name|
          define_method(name) do |*arguments, **options, &block|
            Lines.note(self)
            super(*arguments, **options, &block)
          end
        end

        @sites = {}.compare_by_identity

        class << self
          # Only C code can use a frozen IO.
          def over(io) = (io.singleton_class.prepend(self) unless io.frozen?)
          def note(io) = @sites[io] ||= Audit::Sites.line(caller_locations(2))
          def site(io) = @sites[io]
          # Forgets all uses so far.
          def reset = @sites.clear
        end
      end

      # The bytes that processes wrote to and read from a TCP connection. Bytes that have arrived but were not read do
      # not count.
      module Tcp
        # Offsets in struct tcp_info (linux/tcp.h), Linux 4.19.
        RECEIVED = 128
        NOT_SENT = 144
        SENT = 200
        SIZE = 216
        # States after the peer's FIN, which the kernel counts as a byte.
        ENDED = [8, 9, 11].freeze
        WAITING = 0x541B # FIONREAD

        # @return [Array(Integer, Integer), nil] written and read
        # @raise [SystemCallError, SocketError] it is no TCP socket
        def self.bytes(socket)
          info = socket.getsockopt(:TCP, :INFO).data
          return if info.bytesize < SIZE || socket.getsockopt(:SOCKET, :ACCEPTCONN).bool

          sent, again = info.unpack("@#{SENT}QQ")
          received = info.unpack1("@#{RECEIVED}Q") - (ENDED.include?(info.getbyte(0)) ? 1 : 0)
          waiting = [0].pack("i")
          socket.ioctl(WAITING, waiting)
          [sent - again + info.unpack1("@#{NOT_SENT}L"), received - waiting.unpack1("i")]
        end
      end

      # The state in /proc/self/fdinfo of an epoll, eventfd, timerfd, inotify or the like.
      module EventSource
        # `setting` tells how it was armed, `left` the seconds until it expires, `interval` those of a repeating one.
        Timer = Struct.new(:setting, :left, :interval) do
          def once? = interval.zero?
        end

        def self.state(text)
          left, interval = %w[it_value it_interval].map { |name| seconds(text, name) }
          return Timer.new([interval, text[/^settime flags:.*/]], left, interval) if left

          text.gsub(/\bpos:\S*/, "") # without the positions of files that an epoll watches
        end

        def self.seconds(text, name)
          seconds, nanoseconds = text.match(/^#{name}: \((\d+), (\d+)\)/)&.captures&.map(&:to_i)
          seconds && (seconds + (nanoseconds / 1e9))
        end
        private_class_method :seconds
      end
    end
  end
end

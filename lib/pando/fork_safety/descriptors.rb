# frozen_string_literal: true

require "fcntl"
require "socket"
require "pando/fork_safety/weak_set"
require "pando/native"

module Pando
  module ForkSafety
    # The descriptors under Ruby's IO objects: which of them are kept, and how
    # the others are replaced. IO#close will not do: it flushes what the parent
    # had buffered, TLS says goodbye, and the freed number is given to the next
    # file while a library still believes it to be its socket. IO#reopen flushes
    # too. dup3(2) does none of this.
    #
    # @api private
    module Descriptors
      STDIO = (0..2)
      # A class may have redefined them, and IO's own are what is wanted.
      FILENO = IO.instance_method(:fileno)
      CLOSED = IO.instance_method(:closed?)
      STAT = IO.instance_method(:stat)
      FCNTL = IO.instance_method(:fcntl)
      FLUSH = IO.instance_method(:flush)
      READPARTIAL = IO.instance_method(:readpartial)
      CHUNK = 65_536
      private_constant :FILENO, :CLOSED, :STAT, :FCNTL, :FLUSH, :READPARTIAL, :CHUNK

      @kept = {}.compare_by_identity
      @private = WeakSet.new

      class << self
        # @param ios [Array<IO, #to_io>]
        # @return [nil]
        # @raise [TypeError]
        def keep(ios)
          found = ios.map { |one| IO.try_convert(one) or raise TypeError, "not an IO: #{one.inspect}" }
          @kept.delete_if { |io, _| !open?(io) }
          found.each { |io| @kept[io] = @kept[Sys.write_half(io)] = true if open?(io) }
          nil
        end

        # @return [Array<Integer>] numbers of what is kept
        def kept_numbers = @kept.each_key.filter_map { |io| number(io) }

        # @param io [IO]
        # @return [nil]
        def keep_from_children(io)
          @private.add(io)
          nil
        end

        # @return [Integer] how many of those are open
        def private_count = @private.to_a.count { |io| number(io) }

        # @param found [Array<Audit::Descriptor>]
        # @return [Integer] how many were replaced
        def cut(found)
          return 0 if found.empty?

          Substitutes.open do |substitutes|
            found.count { |one| same?(one) && !substitutes.include?(one.number) && cut_one(one, substitutes) }
          end
        end

        # In a new child.
        # @return [nil]
        def cut_off
          doomed = @private.to_a.select { |io| number(io) }
          return if doomed.empty?

          Substitutes.open do |substitutes|
            doomed.each { |io| replace(io, substitutes) }
          end
          @private = WeakSet.new # what is beneath them now is nobody's connection
          nil
        end

        # @return [Integer] how many IOs were replaced
        def replace_all
          spared = kept_numbers
          doomed = ObjectSpace.each_object(IO).select { |io| replaceable?(io, spared) }
          Substitutes.open do |substitutes|
            doomed.count { |io| replace(io, substitutes) }
          end
        end

        private

        # Several IO objects may have one number: each number is judged, not each object.
        def replaceable?(io, spared)
          fd = number(io)
          fd && !STDIO.cover?(fd) && !spared.include?(fd) && !log?(io)
        end

        # Nobody shares the position of a file that is only appended to.
        def log?(io)
          return false unless STAT.bind_call(io).file?

          FCNTL.bind_call(io, Fcntl::F_GETFL).anybits?(File::APPEND)
        rescue SystemCallError
          false
        end

        # An IO that has outlived its number may have that of one of the substitutes, or of the interpreter's timer,
        # which a child makes anew.
        def replace(io, substitutes)
          fd = number(io)
          return false if substitutes.include?(fd) || Sys.reserved_fd?(fd)

          socket = STAT.bind_call(io).socket?
          Sys.replace_fd(fd, substitutes.null)
          drop_buffers(io)
          Sys.replace_fd(fd, substitutes.hung_up) if socket
          true
        rescue Errno::EBADF, IOError
          false # the object outlived its descriptor
        end

        # Each of its objects may have buffered something; C code may have it without any.
        def cut_one(found, substitutes)
          found.ios.each { |io| replace(io, substitutes) if number(io) == found.number }
          Sys.replace_fd(found.number, found.socket? ? substitutes.hung_up : substitutes.null)
          true
        rescue Errno::EBADF
          false
        end

        # Meanwhile its number may have become another's.
        def same?(found)
          File.readlink("/proc/self/fd/#{found.number}") == found.target
        rescue SystemCallError
          false
        end

        # With /dev/null beneath: what was not yet written goes there, what was not
        # yet read is read away.
        def drop_buffers(io)
          attempt { FLUSH.bind_call(io) }
          attempt { loop { READPARTIAL.bind_call(io, CHUNK) } }
        end

        def attempt
          yield
        rescue SystemCallError, IOError
          nil # at its end, or not open this way
        end

        def number(io)
          FILENO.bind_call(io) if open?(io)
        end

        def open?(io)
          !CLOSED.bind_call(io)
        rescue IOError
          false # allocated, never opened
        end
      end
    end
  end
end

require "pando/fork_safety/substitutes"

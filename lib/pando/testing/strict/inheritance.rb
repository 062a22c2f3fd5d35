# frozen_string_literal: true

require "pando/fork_safety/audit"
require "pando/fork_safety/use"

module Pando
  module Testing
    class Strict
      # The descriptors that children inherit, and which of them they have used. An inherited connection is not a fault
      # yet, because many libraries notice the fork and open their own. Using it is a fault.
      class Inheritance
        # One descriptor as it was at the fork, with the bytes that were written to and read from a TCP connection by
        # then.
        Heirloom = Struct.new(:descriptor, :bytes) do
          # @return [String, nil] "file:line" of the first use
          def site = descriptor.ios.lazy.filter_map { |io| ForkSafety::Use::Lines.site(io) }.first
        end
        # By the type of descriptor.
        FAULTS = { connection: :shared_socket, datagram: :shared_socket, pipe: :shared_pipe,
                   file: :shared_position }.freeze
        NO_DATA = %r{\A/(?:dev|proc)/}
        IP = /\A(?:[\d.]+|\[.+\]):\d+\z/
        private_constant :Heirloom, :FAULTS, :NO_DATA, :IP

        # Called in the forking process.
        # @param keep [Array<String>] patterns of peers and paths that are shared on purpose
        def initialize(outputs, keep = [])
          @forker = Process.pid
          numbers = outputs.grep(IO).filter_map { |io| ForkSafety::Descriptors.number(io) }
          spared = [0, 1, 2, *numbers, *ForkSafety::Audit.kept_numbers(keep)]
          inventory = ForkSafety::Audit::Inventory.new
          delicate = inventory.descriptors.select { |one| delicate?(one) && !spared.include?(one.number) }
          inventory.attribute(delicate)
          @heirlooms = delicate.map { |one| Heirloom.new(one, bytes(one)) }
        end

        # Called in the heir.
        def watch
          @heirlooms.flat_map { |one| one.descriptor.ios }.each { |io| ForkSafety::Use::Lines.over(io) }
          nil
        end

        # Called in the heir.
        def used
          @heirlooms.select { |one| used?(one) }.map { |one| finding(one) }
        end

        private

        def delicate?(descriptor)
          return FAULTS.key?(descriptor.type) unless descriptor.type == :file

          path = descriptor.target
          !descriptor.append? && !NO_DATA.match?(path) && File.file?(path)
        end

        # @return [Array, nil] nil: it is no TCP connection, or not the same any more
        def bytes(descriptor)
          ForkSafety::Use.figures(descriptor.number, descriptor.target) if descriptor.socket?
        end

        def used?(one)
          return moved?(one.descriptor) if one.descriptor.type == :file

          one.site || talked?(one)
        end

        # Reads the position in the forking process, which has not moved it.
        def moved?(file)
          position = File.read("/proc/#{@forker}/fdinfo/#{file.number}")[/^pos:\s*(\d+)/, 1]
          position.to_i != file.position
        rescue SystemCallError
          false # the forking process has ended, so the position is unknown
        end

        # Whether Ruby or C code has used the connection.
        def talked?(one)
          now = one.bytes && bytes(one.descriptor)
          now && now != one.bytes
        end

        def finding(one)
          descriptor = one.descriptor
          ForkSafety::Finding.new(FAULTS.fetch(descriptor.type), severity: :error, subject: name(descriptor),
                                                                 message: message(descriptor), location: one.site)
        end

        def message(descriptor)
          if descriptor.type == :file
            return "The position of #{descriptor.target}, open since before the refork, was moved by two processes."
          end

          "A #{descriptor.socket? ? "socket" : "pipe"} from before the refork (#{name(descriptor)}) was used after " \
            "it, while another process has it open."
        end

        def name(descriptor)
          case descriptor.type
          when :file then File.basename(descriptor.target)
          when :pipe then "pipe"
          else IP.match?(descriptor.peer) ? descriptor.peer : "a Unix socket #{descriptor.peer}".strip
          end
        end
      end
    end
  end
end

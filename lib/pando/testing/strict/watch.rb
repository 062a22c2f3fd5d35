# frozen_string_literal: true

require "pando/fork_safety/audit/sites"

module Pando
  module Testing
    class Strict
      # Prepended to an inherited IO: remembers the line that first used it.
      module Watch
        METHODS = %i[read readpartial read_nonblock sysread pread gets getc getbyte readline readlines readchar readbyte
                     each_line each_byte each_char ungetc recv recv_nonblock recvmsg recvmsg_nonblock recvfrom
                     write write_nonblock syswrite print puts putc printf << send sendmsg sendmsg_nonblock].freeze
        private_constant :METHODS

        METHODS.each do |name|
          define_method(name) do |*arguments, **options, &block|
            Watch.note(self)
            super(*arguments, **options, &block)
          end
        end

        @sites = {}.compare_by_identity

        class << self
          def over(io) = io.singleton_class.prepend(self)
          def note(io) = @sites[io] ||= ForkSafety::Audit::Sites.line(caller_locations(2))
          def site(io) = @sites[io]
          # Forgets all uses so far.
          def reset = @sites.clear
        end
      end
    end
  end
end

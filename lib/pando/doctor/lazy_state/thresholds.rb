# frozen_string_literal: true

module Pando
  module Doctor
    module LazyState
      # The sizes from which a finding is reported. docs/lazy-state.md lists them.
      module Thresholds
        # Bytes that one line keeps, for a note.
        NOTE = 4096
        # Bytes for a warning: each worker has to build that much, and does not share it.
        WARNING = 256 * 1024
        # Loaded files for a warning.
        FILES = 20
        # Methods that a line outside of the application defines, for a note.
        METHODS = 10

        # @return [Symbol] the severity for state that was built once
        def self.severity(bytes) = bytes >= WARNING ? :warning : :note

        # @return [String] for a human
        def self.size(bytes)
          return "#{bytes} bytes" if bytes < 1024

          value, unit = bytes < 1024 * 1024 ? [bytes / 1024.0, "KiB"] : [bytes / 1_048_576.0, "MiB"]
          format(value < 10 ? "%<value>.1f %<unit>s" : "%<value>.0f %<unit>s", value: value, unit: unit)
        end

        # @return [String] "1 file", "12,345 files"
        def self.count(number, noun)
          "#{number.to_s.gsub(/(?<=\d)(?=(?:\d{3})+\z)/, ",")} #{noun}#{"s" unless number == 1}"
        end
      end
    end
  end
end

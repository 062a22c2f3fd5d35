# frozen_string_literal: true

require "pando/events"
require "pando/sys"

module Pando
  class Server
    # Sets how the kernel treats the application's memory pages: in a mold that boots from cold, before the application
    # is loaded, and so for all that is forked from it. Called by Payload.
    #
    # @api private
    module PageSettings
      # 1 if the kernel's thread that looks for equal pages runs (ksm.rst of Linux).
      KSM = "/sys/kernel/mm/ksm/run"
      KSM_OFF = "KSM does not run: as root, write 1 to #{KSM}".freeze
      LACKING = { transparent_huge_pages: "this kernel cannot turn them off for a process (%s)",
                  same_page_merging: "this kernel has no KSM for whole processes: that takes Linux 6.4 (%s)" }.freeze

      module_function

      # Emits an event if the kernel does not support a setting, and continues without it.
      # @param huge [Boolean] whether there may be huge pages @param merge [Boolean] whether equal pages are merged
      # @return [nil]
      def apply(huge:, merge:, kernel: Sys, ksm: KSM)
        ask(:transparent_huge_pages) { kernel.disable_huge_pages! } unless huge
        return unless merge && ask(:same_page_merging) { kernel.merge_same_pages! }

        tell(:same_page_merging, KSM_OFF) unless running?(ksm)
      end

      # @return [Boolean] whether the kernel has accepted it
      def ask(setting)
        yield
      rescue SystemCallError => e
        tell(setting, format(LACKING.fetch(setting), e.message))
        false
      end

      def running?(ksm)
        File.read(ksm).to_i == 1
      rescue SystemCallError
        true # this process may not read it
      end

      def tell(setting, reason)
        Events.emit("pages.unavailable", setting: setting, reason: reason)
        nil
      end
      private_class_method :ask, :running?, :tell
    end
  end
end

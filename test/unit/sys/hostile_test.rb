# frozen_string_literal: true

require "test_helper"
require "open3"
require "rbconfig"
require "tmpdir"

# What of sys/ needs no Ruby, tried in C under the sanitizers: test/c/sys_hostile.c.
class SysHostileTest < Minitest::Test
  SANITIZERS = %w[-fsanitize=address,undefined -fno-sanitize-recover=all].freeze
  FLAGS = %w[-std=gnu11 -D_GNU_SOURCE -g -O1 -Wall -Wextra -Werror].freeze
  SOURCES = %w[test/c/sys_hostile.c ext/pando/sys/scoreboard.c ext/pando/sys/record.c]
            .map { |source| Support::Checkout.path(source) }.freeze

  def test_nothing_leads_out_of_bounds_or_leaks
    Dir.mktmpdir do |folder|
      skip "the compiler has no address and undefined-behaviour sanitizers" unless sanitizers?(folder)
      output, status = Open3.capture2e(*compiler(SOURCES, "#{folder}/test"))
      assert_predicate status, :success?, output
      output, status = Open3.capture2e("#{folder}/test")
      assert_predicate status, :success?, output
      assert_equal "all hold\n", output
    end
  end

  private

  def compiler(sources, program)
    [ENV.fetch("CC", RbConfig::CONFIG["CC"]), *FLAGS, *SANITIZERS, "-I", Support::Checkout.path("ext/pando"), *sources,
     "-o", program]
  end

  def sanitizers?(folder)
    File.write("#{folder}/empty.c", "int main(void) { return 0; }\n")
    _, status = Open3.capture2e(*compiler(["#{folder}/empty.c"], "#{folder}/empty"))
    status.success? && system("#{folder}/empty")
  end
end

# frozen_string_literal: true

require "test_helper"
require "open3"
require "tmpdir"

# Promise: whatever goes wrong, and several things at once, no request is lost without a reason or done twice, and the
# cluster heals by itself. A short run of what bin/chaos does for as long as one likes: docs/chaos.md.
#
# With job nodes where the seed is odd; molds are let go where half of it is odd; workers have several requests at once
# where a quarter of it is odd; some paths have a pool of their own where an eighth of it is divisible by four.
#
#     CHAOS_SEED=7 CHAOS_MINUTES=5 bin/test test/chaos/chaos_test.rb
class ChaosTest < Minitest::Test
  MINUTES = Float(ENV.fetch("CHAOS_MINUTES", "0.75"))

  def test_nothing_is_violated
    in_folder do |folder|
      output, status = Open3.capture2e(*command("--minutes", MINUTES, "--seed", seed, "--artefacts", folder, "--quiet",
                                                *("--nodes" if seed.odd?), *("--release" if (seed / 2).odd?),
                                                *(%w[--threads 5] if (seed / 4).odd?),
                                                *("--pools" if (seed / 8 % 4).zero?)))

      puts output
      assert_predicate status, :success?, "#{output}\n#{logs(folder)}"
    end
  end

  def test_a_violation_is_told_with_the_seed
    in_folder do |folder|
      output, status = Open3.capture2e({ "CHAOS_TRUANT" => "1" }, *command("--minutes", 1, "--seed", 5, "--artefacts",
                                                                           folder, "--quiet", "--only", "refork"))

      assert_equal 1, status.exitstatus, output
      assert_match(/^VIOLATION: answered, and never done: /, output)
      assert_match(/^again: .*--seed 5 --only "refork"$/, output)
      refute_empty logs(folder)
    end
  end

  def test_a_fault_that_does_not_exist_is_named
    output, status = Open3.capture2e(*command("--only", "kill,kil mold"))

    assert_equal 1, status.exitstatus, output
    assert_match(/\Ano such fault: kil mold\. There are: .*\bkill, /, output)
  end

  private

  # One that a sound run removes.
  def in_folder = Dir.mktmpdir("pando-chaos-logs") { |folder| yield File.join(folder, "run") }

  def seed = @seed ||= Integer(ENV.fetch("CHAOS_SEED", Random.new_seed % 1_000_000))

  def command(*options)
    paths = %w[lib test test/chaos/support].flat_map { |folder| ["-I", Support::Checkout.path(folder)] }
    [RbConfig.ruby, *paths, "-rchaos", "-e", "exit Chaos.run(ARGV)", "--", *options.map(&:to_s)]
  end

  def logs(folder)
    Dir[File.join(folder, "*")].map { |path| "#{File.basename(path)}:\n#{File.readlines(path).last(150).join}" }.join
  end
end

# frozen_string_literal: true

require "test_helper"
require "open3"
require "rbconfig"
require "tmpdir"

# bench/ruby-cow/writers.rb tells which of malloc's blocks a fork has written to.
class CowWritersTest < Minitest::Test
  FOLDER = Support::Checkout.path("bench/ruby-cow")
  # Pages of one string, the child writes to a word of each.
  PAGES = 500
  PROGRAM = <<~RUBY.freeze
    text = "a" * (#{PAGES} * 4096)
    child = fork do
      #{PAGES}.times { |page| text.setbyte(page * 4096, 98) }
      puts "\#{Process.pid} \#{Process.ppid}"
      $stdout.flush
      $stdin.read
    end
    Process.wait(child)
  RUBY

  def test_what_a_child_has_written_to
    skip "only root sees which pages are the same" unless Process.uid.zero?
    Dir.mktmpdir("pando-writers") do |folder|
      report = observed(library(folder)) { |pids| report(*pids) }
      share, alone, words = report.lines[1].split.map(&:to_f)

      assert_match(/\A[\d.]+ MiB copied$/, report)
      assert_operator report.to_f, :>=, PAGES / 256.0
      assert_operator share, :>=, 0.9 * PAGES / 256
      assert_operator alone, :<=, share + 0.01
      assert_operator words, :>=, PAGES - 2
    end
  end

  private

  def library(folder)
    path = File.join(folder, "blocks.so")
    output, status = Open3.capture2e("cc", "-O2", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE",
                                     "-o", path, File.join(FOLDER, "blocks.c"), "-ldl")
    assert_predicate status, :success?, output
    path
  end

  def observed(library)
    environment = { "LD_PRELOAD" => library, "RUBYOPT" => nil }
    IO.popen([environment, RbConfig.ruby, "--disable=gems", "-e", PROGRAM], "r+") do |program|
      yield program.gets.split
    end
  end

  def report(*pids)
    output, status = Open3.capture2e(RbConfig.ruby, File.join(FOLDER, "writers.rb"), *pids, "3")
    assert_predicate status, :success?, output
    output
  end
end

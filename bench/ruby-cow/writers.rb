# frozen_string_literal: true

# What a forked process has written to, of a real application: each page that it shares with its forker no more is
# compared with the forker's word by word, and each word that differs looked up in what malloc was called for. As root,
# for two processes that blocks.c records (see there), both at rest:
#
#     ruby bench/ruby-cow/writers.rb CHILD FORKER [LINES]
#
# Columns: MiB of pages, those with several writers divided between them; of pages that nobody else has written to;
# words.
require_relative "writers/image"
require_relative "writers/blocks"
require_relative "writers/functions"

# The report.
class Writers
  MIB = 256.0 # pages
  Tally = Struct.new(:share, :alone, :words)

  def initialize(child, forker)
    @child = child
    @forker = forker
    @blocks = [child, forker].to_h { |image| [image, Blocks.new(image)] }
    @functions = Functions.new(child)
    @labels = {}
    @tallies = Hash.new { |all, writer| all[writer] = Tally.new(0.0, 0, 0) }
  end

  def print(lines)
    all = copied
    all.each { |page| look(page) }
    puts "#{(all.size / MIB).round(1)} MiB copied"
    @tallies.sort_by { |_, tally| -tally.share }.first(lines).each do |writer, tally|
      share, alone = [tally.share, tally.alone].map { |pages| (pages / MIB).round(2).to_s.rjust(7) }
      puts [share, alone, tally.words.to_s.rjust(8), " #{writer}"].join(" ")
    end
  end

  private

  # @return [Array<Integer>] addresses of the anonymous pages that both have, and not the same one
  def copied
    own = @child.mappings.select do |mapping|
      mapping.flags.start_with?("rw-p") && ["", "[heap]"].include?(mapping.name) && !tables?(mapping)
    end
    own.flat_map do |mapping|
      both = @child.frames(mapping).zip(@forker.frames(mapping)).each_with_index
      both.filter_map { |(one, other), index| mapping.from + (index * Image::PAGE) if differ?(one, other) }
    end
  end

  def tables?(mapping) = [Blocks::TABLE, Blocks::CALLERS].include?(mapping.from)
  def differ?(one, other) = !(one.zero? || other.to_i.zero? || one == other)

  def look(page)
    found = Hash.new(0)
    @child.words(page).zip(@forker.words(page)).each_with_index do |(now, before), index|
      found[writer(page + (index * Image::WORD))] += 1 if now != before
    end
    found["nothing: the content is the same again"] = 1 if found.empty?
    found.each { |writer, words| add(@tallies[writer], words, found.size) }
  end

  def add(tally, words, writers)
    tally.share += 1.0 / writers
    tally.alone += 1 if writers == 1
    tally.words += words
  end

  def writer(address)
    now, before = [@child, @forker].map { |image| @blocks[image].at(address) }
    return "no block of malloc's: Ruby's heap, the allocator's own" unless now || before
    return "freed: #{label(@forker, before)}" unless now
    return "in a free block: #{label(@child, now)}" unless before

    now == before ? label(@child, now) : "freed and used again: #{label(@forker, before)}"
  end

  def label(image, block)
    @labels[[image, block.callers]] ||= @functions.label(@blocks[image].callers(block))
  end
end

child, forker, lines = ARGV.map(&:to_i)
abort "Usage: #{$PROGRAM_NAME} CHILD FORKER [LINES]" unless forker
Writers.new(Image.new(child), Image.new(forker)).print(lines || 40)

# frozen_string_literal: true

# What blocks.c has recorded in a process.
class Blocks
  TABLE = 0x600000000000
  CALLERS = 0x610000000000
  SLOTS = 1 << 23
  CHUNK = 1 << 20
  Block = Struct.new(:address, :bytes, :callers)

  def initialize(image)
    @image = image
    @blocks = (0...(SLOTS * 16)).step(CHUNK).flat_map { |offset| blocks(offset) }.sort_by!(&:address)
    abort "blocks.so is not loaded there" if @blocks.empty?
  end

  # @return [Block, nil]
  def at(address)
    index = @blocks.bsearch_index { |block| block.address > address } || @blocks.size
    block = @blocks[index - 1] if index.positive?
    block if block && address < block.address + block.bytes
  end

  # @return [Array<Integer>] addresses in the code, innermost first
  def callers(block) = @image.words(CALLERS + (block.callers * 96), 11).drop(1).reject(&:zero?)

  private

  def blocks(offset)
    @image.words(TABLE + offset, CHUNK / 8).each_slice(2).filter_map do |address, rest|
      Block.new(address, rest & 0xffffffff, rest >> 32) if address > 1
    end
  end
end
